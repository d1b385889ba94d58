/** Whether a value is bytes. */

/** Reads the inner kind of a typed array, of whatever realm: no name that an object gives itself, and no Proxy, has one. */
const kindOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)?.get

/** True for a `Uint8Array`, also one of another realm, and for a `Buffer`. Never throws. */
export const isBytes = (value: unknown): value is Uint8Array => kindOf?.call(value) === "Uint8Array"

/** True for what a record may have as key, value or header: bytes, or null. Never throws. */
export const isBytesOrNull = (value: unknown): value is Uint8Array | null => value === null || isBytes(value)
