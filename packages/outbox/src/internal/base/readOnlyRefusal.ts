/** Recognises the refusal of a server, or of a session, that takes no writes. */

/**
 * PostgreSQL: `read_only_sql_transaction`. MySQL and MariaDB: `ER_OPTION_PREVENTS_STATEMENT` (`--read-only`), `ER_READ_ONLY_MODE` and
 * `ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION`. Drivers give them as `code` or as `errno`.
 */
const codes: ReadonlySet<unknown> = new Set([
  "25006",
  1290,
  1836,
  1792,
  "ER_OPTION_PREVENTS_STATEMENT",
  "ER_READ_ONLY_MODE",
  "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION"
])

/** MySQL has one code for all options that prevent a statement. */
const namesReadOnly = /read[-_ ]only/i

/** How deep the causes of an error are searched. */
const mostCauses = 8

/** Whether a driver's error, or a cause of it, says that writes are refused. */
export const isReadOnlyRefusal = (error: unknown): boolean => {
  let current = error
  for (let depth = 0; depth < mostCauses && typeof current === "object" && current !== null; depth++) {
    const { code, errno, message, reason, cause } = current as Record<string, unknown>
    if (codes.has(code) || codes.has(errno)) {
      const isOption = code === "ER_OPTION_PREVENTS_STATEMENT" || errno === 1290
      return !isOption || typeof message !== "string" || namesReadOnly.test(message)
    }
    current = reason ?? cause
  }
  return false
}
