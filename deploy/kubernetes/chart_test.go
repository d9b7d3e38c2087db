package kubernetes

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	scaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// render renders the chart in ../helm/weir with values over its own, and decodes what it
// makes, by the names of the types.
func render(t *testing.T, values map[string]any) (map[string]any, error) {
	t.Helper()
	chart, err := loader.Load("../helm/weir")
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "limits", Namespace: "shop"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]any{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, ".yaml") && strings.TrimSpace(files[file]) != "" {
			object := decode(t, []byte(files[file]))
			objects[reflect.TypeOf(object).Elem().Name()] = object
		}
	}
	return objects, nil
}

// TestChart renders the chart in its forms, and decodes what it makes strictly.
func TestChart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values map[string]any
		want   []string // types
		args   []string
	}{
		{"several and a store", nil, []string{"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}, []string{"--nodes=auto"}},
		{
			"one with a volume", map[string]any{"store": false, "replicas": 1, "data": map[string]any{"enabled": true, "storageClass": "fast"}},
			[]string{"ConfigMap", "NetworkPolicy", "Service", "StatefulSet"}, []string{"--data=/var/lib/weir/data"},
		},
		{
			"autoscaling", map[string]any{"autoscaling": map[string]any{"enabled": true}, "grpc": map[string]any{"enabled": true}, "extraArgs": []any{"--log-format=json"}},
			[]string{"ConfigMap", "Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "Service"}, []string{"--grpc-listen=h2c://:8082", "--nodes=auto", "--log-format=json"},
		},
		{"one in memory", map[string]any{"store": false, "replicas": 1, "networkPolicy": map[string]any{"enabled": false}}, []string{"ConfigMap", "Deployment", "Service"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			objects, err := render(t, c.values)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(objects)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			checkChart(t, objects, c.args)
		})
	}
}

// checkChart checks that what the chart has made fits together.
func checkChart(t *testing.T, objects map[string]any, args []string) {
	t.Helper()
	var pod core.PodTemplateSpec
	selectors := map[string]map[string]string{}
	switch w := objects["Deployment"].(type) {
	case *apps.Deployment:
		pod, selectors["workload"] = w.Spec.Template, w.Spec.Selector.MatchLabels
	default:
		w2 := objects["StatefulSet"].(*apps.StatefulSet)
		pod, selectors["workload"] = w2.Spec.Template, w2.Spec.Selector.MatchLabels
		if claim := w2.Spec.VolumeClaimTemplates[0]; claim.Name != "data" || claim.Spec.AccessModes[0] != core.ReadWriteOncePod {
			t.Errorf("got claim %v", claim)
		}
	}
	container := pod.Spec.Containers[0]
	base := []string{"serve", "--rules=/etc/weir/rules.yaml", "--listen=:8080", "--admin=:8081"}
	if want := append(base, args...); !slices.Equal(container.Args, want) {
		t.Errorf("got args %v, want %v", container.Args, want)
	}
	var ports []string
	for _, p := range container.Ports {
		ports = append(ports, p.Name)
	}
	service := objects["Service"].(*core.Service)
	selectors["service"] = service.Spec.Selector
	for _, p := range service.Spec.Ports {
		if !slices.Contains(ports, p.TargetPort.StrVal) {
			t.Errorf("the service leads to port %s, the container has %v", p.TargetPort.StrVal, ports)
		}
	}
	if p, ok := objects["PodDisruptionBudget"].(*policy.PodDisruptionBudget); ok {
		selectors["budget"] = p.Spec.Selector.MatchLabels
	}
	if n, ok := objects["NetworkPolicy"].(*network.NetworkPolicy); ok {
		selectors["network policy"] = n.Spec.PodSelector.MatchLabels
		for _, rule := range n.Spec.Ingress {
			for _, p := range rule.Ports {
				if !slices.Contains(ports, p.Port.StrVal) {
					t.Errorf("the policy names port %s, the container has %v", p.Port.StrVal, ports)
				}
			}
		}
	}
	if h, ok := objects["HorizontalPodAutoscaler"].(*scaling.HorizontalPodAutoscaler); ok {
		d := objects["Deployment"].(*apps.Deployment)
		if d.Spec.Replicas != nil || h.Spec.ScaleTargetRef.Name != d.Name {
			t.Errorf("got replicas %v, and an autoscaler of %s", d.Spec.Replicas, h.Spec.ScaleTargetRef.Name)
		}
	}
	for what, selector := range selectors {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("the %s selects %v, the pod has %v", what, selector, pod.Labels)
		}
	}
	if rules := objects["ConfigMap"].(*core.ConfigMap); rules.Data["rules.yaml"] == "" || pod.Spec.Volumes[0].ConfigMap.Name != rules.Name {
		t.Errorf("got rules %v, mounted from %s", rules.Data, pod.Spec.Volumes[0].ConfigMap.Name)
	}
	if s := container.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !*pod.Spec.SecurityContext.RunAsNonRoot {
		t.Error("the container is not locked down")
	}
}

// Values that would count wrongly are refused.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	for want, values := range map[string]map[string]any{
		"only with a store": {"store": false},
		"autoscaling would": {"autoscaling": map[string]any{"enabled": true}, "data": map[string]any{"enabled": true}},
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q", values, err, want)
		}
	}
}
