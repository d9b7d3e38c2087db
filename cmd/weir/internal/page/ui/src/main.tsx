import { render } from "preact";
import { useEffect } from "preact/hooks";
import "./style.css";
import { href, route } from "./lib/route";
import { t, type Text } from "./lib/i18n";
import { known, load, may, session, unreachable } from "./lib/session";
import { helping, listen } from "./lib/shortcuts";
import "./lib/theme";
import { Page } from "./parts/Page";
import { Empty } from "./parts/Empty";
import { Failed, Loading, Notice } from "./parts/Notice";
import { Failure } from "./lib/api";
import { Help } from "./views/Help";
import { Key } from "./views/Key";
import { Overview, prefetch } from "./views/Overview";
import { Rules } from "./views/Rules";
import { SignIn } from "./views/SignIn";
import { Try } from "./views/Try";
import { Why } from "./views/Why";

const views: Record<string, { title: Text; view: () => preact.JSX.Element }> = {
  "": { title: "nav.overview", view: Overview },
  live: { title: "nav.live", view: Why },
  key: { title: "nav.key", view: Key },
  rules: { title: "nav.rules", view: Rules },
  try: { title: "nav.try", view: Try },
};

function App() {
  const found = views[route.value.path[0] ?? ""];
  const title = found ? t(found.title) : "";
  useEffect(() => {
    document.title = title ? `${title} · weir` : "weir";
  }, [title]);
  return (
    <>
      <Page>
        <Content view={found?.view} />
      </Page>
      {helping.value && <Help />}
    </>
  );
}

function Content({ view: View }: { view?: () => preact.JSX.Element }) {
  const s = session.value;
  if (!s) return unreachable.value ? <Failed error={new Failure(unreachable.value)} retry={() => void load()} /> : <Loading />;
  if (!s.signed_in) return <SignIn />;
  if (!may("read")) return <Notice kind="bad">{t("session.noread", { name: s.name ?? "" })}</Notice>;
  if (!View)
    return (
      <Empty title={t("view.missing")}>
        <a href={href([])}>{t("view.home")}</a>
      </Empty>
    );
  return <View key={route.value.query.get("ns") ?? ""} />;
}

listen();
void load();
// The overview asks for its numbers before it is drawn.
if (route.value.path.length === 0) {
  if (known()) prefetch();
  else {
    const stop = session.subscribe(() => {
      if (!may("read")) return;
      stop();
      prefetch();
    });
  }
}
setInterval(() => void (unreachable.value && load()), 5000);
render(<App />, document.getElementById("page")!);
