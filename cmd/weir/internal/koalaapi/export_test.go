package koalaapi

import "github.com/weirhq/weir"

// Parameters returns the parameters of a query.
func Parameters(query string) []weir.Attribute { return appendParameters(nil, query) }
