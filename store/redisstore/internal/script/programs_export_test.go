package script

// Programs returns the text of every program by its name.
func Programs() map[string]string {
	all := map[string]string{"peek": Peek().Text}
	for _, r := range recipes() {
		all[r.name()] = r.text()
	}
	return all
}
