// Package kubernetes is for tests only: they decode the manifests in this directory, and
// what the chart in ../helm/weir makes, strictly into the types of Kubernetes.
package kubernetes
