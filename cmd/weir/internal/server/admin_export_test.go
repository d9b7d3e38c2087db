package server

import (
	"net/http"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// AdminCalls returns "METHOD PATH" of each call of the admin address that needs a
// scope, with the scopes.
func AdminCalls() map[string]string {
	all := map[string]string{}
	for path, to := range newAdmin(nil, metrics.New(metrics.Config{}), nil, nil, nil, nil, nil).routes {
		all[to.method+" "+path] = to.need.String()
	}
	return all
}

// NewAdmin returns the handler of the admin address, whose callers keys authenticates unless it is nil, with a call
// /slow. slow also answers calls of the API.
func NewAdmin(keys *access.Keys, slow http.HandlerFunc) http.Handler {
	return newAdmin(nil, metrics.New(metrics.Config{}), nil, &access.Authenticator{Keys: keys}, slow, nil, map[string]adminRoute{"/slow": {http.MethodGet, 0, slow}})
}

// MetricsOnly returns the handler of an address that has the metrics of a handler of [NewAdmin] only, for everybody.
func MetricsOnly(of http.Handler) http.Handler {
	return of.(*admin).metricsOnly(&access.Authenticator{}, "")
}
