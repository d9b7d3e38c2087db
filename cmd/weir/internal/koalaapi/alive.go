package koalaapi

import "net/http"

// alive reports whether the store is available.
func (a *API) alive(*exchange, *http.Request) reply {
	if a.config.Ping != nil && a.config.Ping(a.config.Context) != nil {
		return reply{http.StatusInternalServerError, []byte(`{"errno": -1, "errmsg": "redis-error!"}`)}
	}
	return reply{body: []byte(`{"errno": 0, "errmsg": "OK!"}`)}
}
