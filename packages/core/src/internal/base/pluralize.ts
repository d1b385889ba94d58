/** `1 attempt`, `2 attempts`: what lines for people say of a number of things. */
export const pluralize = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`
