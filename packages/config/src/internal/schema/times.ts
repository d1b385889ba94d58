/** Points in time as people write them. */

/** Epoch milliseconds; NaN for a text that is no time. */
export const parse = (text: string): number => {
  if (/^-?\d{1,15}$/.test(text)) return Number(text)
  // A plus sign that a query does not encode arrives as a space.
  const iso = text.replace(/ (?=\d\d:\d\d$)/, "+")
  const [, day] =
    /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[-+]\d\d:\d\d)$/.exec(iso) ??
    /^(\d{4}-\d\d-\d\d)$/.exec(iso) ??
    []
  // JavaScript takes the 30th of February as the 2nd of March.
  const midnight = day === undefined ? Number.NaN : Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day!) ? Number.NaN : Date.parse(iso)
}
