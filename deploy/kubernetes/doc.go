// Package kubernetes is for tests only: they decode the manifests in this
// directory strictly into the types of Kubernetes.
package kubernetes
