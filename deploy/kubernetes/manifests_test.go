package kubernetes

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	scaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// decode decodes a manifest into the type of its kind. Unknown and repeated fields
// are errors.
func decode(t *testing.T, src []byte) any {
	t.Helper()
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(src, &kind); err != nil {
		t.Fatal(err)
	}
	types := map[string]any{
		"v1/ConfigMap": &core.ConfigMap{}, "v1/Secret": &core.Secret{}, "v1/Service": &core.Service{},
		"apps/v1/Deployment": &apps.Deployment{}, "apps/v1/StatefulSet": &apps.StatefulSet{},
		"policy/v1/PodDisruptionBudget": &policy.PodDisruptionBudget{}, "networking.k8s.io/v1/NetworkPolicy": &network.NetworkPolicy{},
		"autoscaling/v2/HorizontalPodAutoscaler": &scaling.HorizontalPodAutoscaler{},
	}
	object := types[kind.APIVersion+"/"+kind.Kind]
	if object == nil {
		t.Fatalf("got %s %s", kind.APIVersion, kind.Kind)
	}
	if err := yaml.UnmarshalStrict(src, object); err != nil {
		t.Errorf("%s: %v", kind.Kind, err)
	}
	return object
}

// TestManifests decodes the manifests, and checks that their selectors, ports and
// names fit each other.
func TestManifests(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment *apps.Deployment
	var service *core.Service
	var budget *policy.PodDisruptionBudget
	names := map[string]bool{}
	for document := range bytes.SplitSeq(src, []byte("\n---\n")) {
		switch object := decode(t, document).(type) {
		case *apps.Deployment:
			deployment = object
		case *core.Service:
			service = object
		case *policy.PodDisruptionBudget:
			budget = object
		case *core.ConfigMap:
			names["config "+object.Name] = object.Data["rules.yaml"] != ""
		case *core.Secret:
			names["secret "+object.Name] = true
		}
	}
	pod := deployment.Spec.Template
	for what, selector := range map[string]map[string]string{
		"deployment": deployment.Spec.Selector.MatchLabels, "service": service.Spec.Selector, "budget": budget.Spec.Selector.MatchLabels,
	} {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("the %s selects %v, the pod has %v", what, selector, pod.Labels)
		}
	}
	c := pod.Spec.Containers[0]
	var ports []string
	for _, p := range c.Ports {
		ports = append(ports, p.Name)
	}
	for _, p := range service.Spec.Ports {
		if !slices.Contains(ports, p.TargetPort.StrVal) {
			t.Errorf("the service leads to port %s, the container has %v", p.TargetPort.StrVal, ports)
		}
	}
	for _, probe := range []*core.Probe{c.ReadinessProbe, c.LivenessProbe} {
		if !slices.Contains(ports, probe.HTTPGet.Port.StrVal) {
			t.Errorf("a probe asks port %s, the container has %v", probe.HTTPGet.Port.StrVal, ports)
		}
	}
	if !names["secret "+c.EnvFrom[0].SecretRef.Name] || !names["config "+pod.Spec.Volumes[0].ConfigMap.Name] {
		t.Errorf("got names %v, not those of the pod", names)
	}
	if c.VolumeMounts[0].Name != pod.Spec.Volumes[0].Name {
		t.Errorf("got mount %s, volume %s", c.VolumeMounts[0].Name, pod.Spec.Volumes[0].Name)
	}
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !*pod.Spec.SecurityContext.RunAsNonRoot {
		t.Error("the container is not locked down")
	}
	if int(*deployment.Spec.Replicas) <= budget.Spec.MinAvailable.IntValue() {
		t.Error("the budget lets no pod be evicted")
	}
}

// TestPage decodes the manifests in docs/guides/kubernetes.md.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guides/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(block[1], "apiVersion:") {
			found++
			decode(t, []byte(block[1]))
		}
	}
	if found == 0 {
		t.Error("got no manifest")
	}
}
