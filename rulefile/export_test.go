package rulefile

// Keys returns the keys that the parser accepts, by where the schema has them.
func Keys() map[string][]string {
	var windows []string
	for _, k := range windowKeys {
		windows = append(append(windows, k.kind.String()), k.beside...)
	}
	return map[string][]string{
		"":                                  fileKeys,
		"definitions/rule":                  ruleKeys,
		"definitions/rule/properties/after": afterKeys,
		"definitions/ban":                   banKeys,
		"definitions/matcher":               matcherKeys,
		"definitions/list":                  listKeys,
		"definitions/outcome":               outcomeKeys,
		"definitions/window":                windows,
		"definitions/quotas":                {"by", "else"},
	}
}
