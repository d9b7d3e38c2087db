import { t } from "../lib/i18n";
import { Empty } from "../parts/Empty";

/** Rules is a view. */
export function Rules() {
  return (
    <>
      <h1>{t("nav.rules")}</h1>
      <Empty title={t("soon")} />
    </>
  );
}
