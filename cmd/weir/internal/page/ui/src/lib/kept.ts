/** kept returns what the browser keeps under a name, if it keeps anything. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem("weir." + name);
  } catch {
    return null;
  }
}

/** keep makes the browser keep a value, or else it holds until the page is closed. */
export function keep(name: string, value: string): void {
  try {
    localStorage.setItem("weir." + name, value);
  } catch {
    // The browser keeps nothing.
  }
}
