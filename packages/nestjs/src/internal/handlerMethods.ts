/** Which methods of which classes are handlers. The decorators write it, the module reads it. */
import type { Consumer } from "@eventbus/node"

/** A decorated method. */
export interface HandlerMethod {
  /** The name of the consumer. Undefined for the default. */
  readonly name: string | undefined
  /** The name of its bus. */
  readonly bus: string
  /** The consumer whose handler calls `call`. */
  readonly consumer: (call: (...args: ReadonlyArray<unknown>) => unknown) => Consumer
}

/** By prototype and name, and not by function: a decorator above may have replaced the function. */
const methods = new WeakMap<object, Map<string | symbol, HandlerMethod>>()

/** The decorator that notes the method. */
export const decorator =
  (described: HandlerMethod) =>
  (prototype: object, method: string | symbol): void => {
    const known = methods.get(prototype) ?? new Map<string | symbol, HandlerMethod>()
    methods.set(prototype, known.set(method, described))
  }

/** The handlers of a class, those of its base classes included; the class's own win. */
export const of = (prototype: object | null): ReadonlyMap<string | symbol, HandlerMethod> =>
  prototype === null
    ? new Map()
    : new Map([...of(Object.getPrototypeOf(prototype)), ...(methods.get(prototype) ?? new Map())])
