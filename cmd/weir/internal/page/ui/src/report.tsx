import { render } from "preact";
import "./style.css";
import "./report/report.css";
import { setZone } from "./lib/format";
import "./lib/theme";
import { CompareReport } from "./report/compare";
import type { Data } from "./report/data";
import { ReplayReport } from "./report/replay";
import { SuggestReport } from "./report/suggest";

/** Report draws the report whose data the file holds. Its times are in UTC, as weir prints them. */
function Report({ d }: { d: Data }) {
  return d.kind === "replay" ? <ReplayReport d={d} /> : d.kind === "compare" ? <CompareReport d={d} /> : <SuggestReport d={d} />;
}

setZone("UTC");
render(<Report d={JSON.parse(document.getElementById("data")!.textContent!) as Data} />, document.getElementById("page")!);
