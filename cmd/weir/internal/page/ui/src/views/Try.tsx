import { t } from "../lib/i18n";
import { Empty } from "../parts/Empty";

/** Try is a view. */
export function Try() {
  return (
    <>
      <h1>{t("nav.try")}</h1>
      <Empty title={t("soon")} />
    </>
  );
}
