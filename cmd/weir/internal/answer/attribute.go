package answer

import (
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
)

// AttributeFault returns the fault of adding an attribute to attrs, or nil. Its path starts below the
// attributes.
func AttributeFault(attrs []weir.Attribute, name, value string) *fault.Fault {
	if f := NameFault(attrs, name); f != nil {
		return f
	}
	return ValueFault(value).In(name)
}

// NameFault returns the fault of adding an attribute called name to attrs, whatever its value, or nil.
func NameFault(attrs []weir.Attribute, name string) *fault.Fault {
	switch {
	case name == "":
		return fault.Newf("", "an attribute without a name")
	case len(name) > sizes.Text:
		return fault.Newf("", "an attribute's name has %d bytes, more than %d", len(name), sizes.Text)
	case !utf8.ValidString(name):
		return fault.Newf("", "an attribute's name is not valid UTF-8")
	case len(attrs) == sizes.Attributes:
		return fault.Newf("", "more than %d attributes", sizes.Attributes)
	}
	for i := range attrs {
		if attrs[i].Name == name {
			return fault.Newf(name, "is there twice")
		}
	}
	return nil
}

// ValueFault returns the fault, without a path, of the value of an attribute, or nil.
func ValueFault(value string) *fault.Fault {
	switch {
	case len(value) > sizes.Text:
		return fault.Newf("", "has more than %d bytes", sizes.Text) // a client may have cut it
	case !utf8.ValidString(value):
		return fault.Newf("", "text is not valid UTF-8")
	}
	return nil
}
