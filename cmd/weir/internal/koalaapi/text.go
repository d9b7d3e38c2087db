package koalaapi

import "encoding/json"

// appendText appends text as JSON, with <, > and & escaped, because the content
// type of koala's answers is HTML.
func appendText(out []byte, text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // every string has a JSON form
	}
	return append(out, b...)
}
