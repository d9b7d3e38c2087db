package api

import "encoding/json"

// appendText appends text as JSON, with <, > and & escaped: browsers are told
// that all of koala's answers are HTML.
func appendText(out []byte, text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // every text can be written
	}
	return append(out, b...)
}

// problem is a JSON object: its text up to the message, and the message.
func problem(out []byte, before, text string) []byte {
	return append(appendText(append(out[:0], before...), text), '}')
}
