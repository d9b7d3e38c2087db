import { t } from "../lib/i18n";
import { Empty } from "../parts/Empty";

/** Why is a view. */
export function Why() {
  return (
    <>
      <h1>{t("nav.live")}</h1>
      <Empty title={t("soon")} />
    </>
  );
}
