export const en = {};

export const zh: Record<keyof typeof en, string> = {};
