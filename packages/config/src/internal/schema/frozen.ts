/** The value, and all objects and arrays in it, can no longer be changed. What has a class, such as a `Redacted`, stays as it is. */
export const frozen = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) frozen(inner)
  return value
}
