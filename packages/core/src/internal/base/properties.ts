/**
 * Reads the properties of what users give. A getter or a Proxy may throw.
 */

/** Stands for the value of a property that throws when it is read: it is none of the values that a setting may have. */
const unreadable: unique symbol = Symbol("a property that throws")

/** The value of a property, or `unreadable`. */
export const read = (given: object, name: string): unknown => {
  try {
    return (given as Readonly<Record<string, unknown>>)[name]
  } catch {
    return unreadable
  }
}

/** Whether there is a property of this name, also one whose value is undefined. */
export const has = (given: object, name: string): boolean => {
  try {
    return name in given
  } catch {
    return false
  }
}

/** The names of its own properties; undefined of a Proxy whose traps throw. */
export const namesOf = (given: object): ReadonlyArray<string> | undefined => {
  try {
    return Object.keys(given)
  } catch {
    return undefined
  }
}

/** A copy with these properties alone, each read once: a getter may throw, or answer differently the next time. The copy has no undefined property. */
export const taken = <A extends object>(given: A, names: ReadonlyArray<string>): A =>
  Object.fromEntries(
    names.map((name) => [name, read(given, name)] as const).filter(([, value]) => value !== undefined)
  ) as A

/** `taken` with all of its own properties beside those. */
export const takenWhole = <A extends object>(given: A, names: ReadonlyArray<string>): A =>
  taken(given, [...new Set([...names, ...(namesOf(given) ?? [])])])

/** Whether the value may have settings: an object that is no list. */
export const isObject = (value: unknown): value is object => {
  try {
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    // A revoked Proxy.
    return false
  }
}

/** Whether the object is a literal rather than an instance of a class. */
export const isPlain = (value: object): boolean => {
  try {
    const prototype: unknown = Object.getPrototypeOf(value)
    return prototype === null || prototype === Object.prototype
  } catch {
    return true
  }
}

/** Whether the value was made by the class. The prototype of a Proxy may throw. */
export const isInstance = <A>(value: unknown, made: abstract new (...given: never) => A): value is A => {
  try {
    return value instanceof made
  } catch {
    return false
  }
}
