/** Whether a value is bytes. */

/** True for a `Uint8Array`, also one of another realm, and for a `Buffer`. Never throws. */
export const isBytes = (value: unknown): value is Uint8Array => {
  try {
    return value instanceof Uint8Array || Object.prototype.toString.call(value) === "[object Uint8Array]"
  } catch {
    // A Proxy whose traps throw.
    return false
  }
}
