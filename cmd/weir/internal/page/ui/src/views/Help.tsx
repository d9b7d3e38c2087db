import { t, type Text } from "../lib/i18n";
import { helping, setShortcuts, shortcuts } from "../lib/shortcuts";
import { Dialog } from "../parts/Dialog";

const keys: [string[], Text][] = [
  [["/"], "shortcuts.filter"],
  [["j", "k"], "shortcuts.rows"],
  [["Enter"], "shortcuts.open"],
  [["space"], "shortcuts.pause"],
  [["?"], "shortcuts.help"],
];

/** Help lists the shortcuts. */
export function Help() {
  return (
    <Dialog title={t("shortcuts.title")} onClose={() => (helping.value = false)}>
      <dl class="keys">
        <div>
          <dt>
            <kbd>g</kbd> <kbd>o</kbd> <kbd>w</kbd> <kbd>k</kbd> <kbd>r</kbd> <kbd>t</kbd>
          </dt>
          <dd>{t("shortcuts.go.what")}</dd>
        </div>
        {keys.map(([k, what]) => (
          <div key={what}>
            <dt>
              {k.map((key) => (
                <>
                  <kbd>{key === "space" ? t("live.hint") : key}</kbd>{" "}
                </>
              ))}
            </dt>
            <dd>{t(what)}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input type="checkbox" checked={shortcuts.value} onChange={(e) => setShortcuts(e.currentTarget.checked)} /> {t("shortcuts.on")}
      </label>
    </Dialog>
  );
}
