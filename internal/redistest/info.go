package redistest

import "strings"

// Info returns one value of INFO: Info("used_cpu_user"). It is empty when there is
// no such field or no answer.
func (n *Node) Info(field string) string { return n.field(field, "INFO", "everything") }

// field returns the value of a field in a reply of "field:value" lines.
func (n *Node) field(name string, command ...string) string {
	reply, err := n.Do(command...)
	if err != nil {
		return ""
	}
	text, _ := reply.(string)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (n *Node) waitSynced() {
	n.t.Helper()
	Eventually(n.t, n.Addr()+" is a replica in step", func() bool {
		return n.Info("role") == "slave" && n.Info("master_link_status") == "up"
	})
}
