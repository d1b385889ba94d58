/**
 * The text of an error that has no message.
 */

/** Most fields that a text names. */
const maxFields = 20
const fieldName = /^[A-Za-z_$][\w$]{0,63}$/
/** These say nothing beside the class, or have a place of their own. */
const unnamed: ReadonlySet<string> = new Set(["_tag", "name", "message", "stack", "cause"])

/**
 * The names of the fields of an error that has no message, such as `{card, holder}`; empty where there are none. Names only: fields hold the data of a record, and this text
 * goes to headers, tables and logs. A name that no program would give is data too. Never throws.
 */
export const fieldsText = (error: object): string => {
  try {
    const names = Object.keys(error).filter((name) => !unnamed.has(name))
    const shown = new Set(names.slice(0, maxFields).map((name) => (fieldName.test(name) ? name : "…")))
    return shown.size === 0 ? "" : `{${[...shown].join(", ")}}`
  } catch {
    return ""
  }
}
