package redisstore

// Programs returns the text of every program by its name.
func Programs() map[string]string {
	all := map[string]string{"peek": peekScript.text}
	for _, r := range recipes() {
		all[r.name()] = r.text()
	}
	return all
}
