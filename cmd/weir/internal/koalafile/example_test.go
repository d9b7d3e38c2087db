package koalafile_test

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
)

func Example() {
	file, err := koalafile.Parse("koala_rule.conf", []byte(`
[dicts]
[rules]
rule : [count] [act=mall_score; uid=+;] [time=5; count=1;] [result=2; return=501]
[result]
2 : { "Ret_type":2, "Err_no":10, "Str_reason":"Deny" }
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, err := weir.NewEngine(file.Set)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	for range 2 {
		d, err := engine.Take(context.Background(), weir.Request{
			Attributes: weir.Attributes("act", "mall_score", "uid", "7"),
		})
		fmt.Println(d.Allowed, d.Outcome, d.Rule, err)
	}
	// Output:
	// true allow  <nil>
	// false koala-2 koala-501 <nil>
}
