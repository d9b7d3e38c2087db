import { signal } from "@preact/signals";

/** paused is whether the reader has stopped the numbers. */
export const paused = signal(false);

/** live is whether numbers arrive as they happen: "off" before and between streams. */
export const live = signal<"on" | "off" | "lost">("off");

export interface Listeners {
  [event: string]: (data: unknown) => void;
}

/** stream reads server-sent events until its result is called. It ends while the reader pauses or does not see
 * the page, and calls begin each time it begins, so that its caller reads what it has missed. */
export function stream(address: () => string, on: Listeners, begin: () => void): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let wait = 1000;
  let ended = false;

  const close = () => {
    source?.close();
    source = undefined;
    clearTimeout(retry);
  };
  const open = () => {
    if (ended || source || paused.value || document.hidden) return;
    const s = new EventSource(address());
    source = s;
    s.onopen = () => {
      wait = 1000;
      live.value = "on";
      begin();
    };
    s.onerror = () => {
      live.value = "lost";
      close();
      retry = setTimeout(open, wait);
      wait = Math.min(wait * 2, 30_000);
    };
    for (const [name, call] of Object.entries(on)) {
      s.addEventListener(name, (e) => {
        try {
          call(JSON.parse((e as MessageEvent<string>).data));
        } catch (fault) {
          console.error(fault);
        }
      });
    }
  };
  const update = () => {
    if (paused.value || document.hidden) {
      close();
      live.value = "off";
    } else open();
  };
  document.addEventListener("visibilitychange", update);
  const unsubscribe = paused.subscribe(update);
  open();
  return () => {
    ended = true;
    close();
    live.value = "off";
    unsubscribe();
    document.removeEventListener("visibilitychange", update);
  };
}
