/** Promises that functions of users return where nobody waits for one: a rejection that nobody takes over ends the process. */

import { isInstance } from "./properties.ts"

/**
 * Takes over the rejection of a Promise, or of any other value with a `then`, and answers whether it was one. Call it in the same turn in which the value was
 * returned: then no rejection goes unhandled. `onRejected` is called at most once, and with what `then` itself throws, too.
 */
export const attend = (value: unknown, onRejected: (error: unknown) => void): boolean => {
  if (!isObject(value)) return false
  let isTold = false
  const rejected = (error: unknown) => {
    if (isTold) return
    isTold = true
    try {
      onRejected(error)
    } catch {
      // Nobody is left to tell: a throw in here would be the unhandled rejection.
    }
  }
  if (attendNative(value, rejected)) return true
  const then = thenOf(value)
  if (then === undefined) return false
  try {
    attendNative(
      then.call(value, () => {}, rejected),
      rejected
    )
  } catch (error) {
    rejected(error)
  }
  return true
}

/** Whether the value may have a `then`. */
export const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

/** Whether the value is a Promise of the engine. */
export const isNative = (value: object): value is Promise<unknown> => isInstance(value, Promise)

/** A Promise of the engine is attended by the engine's own `then`: its own one may be anything. */
const attendNative = (value: unknown, rejected: (error: unknown) => void): boolean => {
  if (!isObject(value) || !isNative(value)) return false
  try {
    Promise.prototype.then.call(value, undefined, rejected)
    return true
  } catch {
    // An object that only has the prototype.
    return false
  }
}

type Then = (onResolved: () => void, onRejected: (error: unknown) => void) => unknown

/** The `then` of a value. Read once: a getter may answer differently the next time. */
export const thenOf = (value: object): Then | undefined => {
  try {
    const then: unknown = Reflect.get(value, "then")
    return typeof then === "function" ? (then as Then) : undefined
  } catch {
    return undefined
  }
}
