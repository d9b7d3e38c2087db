import { t } from "../lib/i18n";
import { Empty } from "../parts/Empty";

/** Key is a view. */
export function Key() {
  return (
    <>
      <h1>{t("nav.key")}</h1>
      <Empty title={t("soon")} />
    </>
  );
}
