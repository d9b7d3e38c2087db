package koalaapi

import "net/http"

// alive says whether the store can be reached.
func (a *API) alive(_ *exchange, r *http.Request) reply {
	if a.config.Ping != nil && a.config.Ping(r.Context()) != nil {
		return reply{http.StatusInternalServerError, []byte(`{"errno": -1, "errmsg": "redis-error!"}`)}
	}
	return reply{body: []byte(`{"errno": 0, "errmsg": "OK!"}`)}
}
