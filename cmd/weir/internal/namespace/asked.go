package namespace

import (
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/fault"
)

// Header is the header that names the namespace of a call over HTTP, in the
// spelling of [http.Header]. Metadata of gRPC has it in lower case.
const Header = "Weir-Namespace"

// prefix starts a path that names a namespace.
const prefix = "/ns/"

// Cut returns the namespace that the path of a call names, and the rest of the
// path: "shop" and "/v1/take" for "/ns/shop/v1/take". It returns a path that names
// none as it is, and an empty name. The error is a [*fault.Fault].
func Cut(path string) (name, rest string, err error) {
	if !strings.HasPrefix(path, prefix) {
		return "", path, nil
	}
	name = path[len(prefix):]
	if end := strings.IndexByte(name, '/'); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	if err := access.CheckName(name); err != nil {
		return "", "", fault.Newf("namespace", "%v", err)
	}
	return name, rest, nil
}

// Asked returns the namespace that a call names in its path or in its header; both
// may be empty. header has the values of [Header]. The error, a [*fault.Fault], is
// for a header that is no name, or that contradicts the path.
func Asked(inPath string, header []string) (string, error) {
	if len(header) == 0 {
		return inPath, nil
	}
	name := header[0]
	if err := access.CheckName(name); err != nil {
		return "", fault.Newf("header "+Header, "%v", err)
	}
	for _, other := range header[1:] {
		if other != name {
			return "", fault.Newf("header "+Header, "is there twice: %s and %.64q", name, other)
		}
	}
	if inPath != "" && inPath != name {
		return "", fault.Newf("header "+Header, "%s, and the path names the namespace %s; send one of them", name, inPath)
	}
	return name, nil
}
