/** Finds the decorated methods of an application. */
import type { EventBusError } from "@eventbus/node"
import type { ModulesContainer } from "@nestjs/core"
import * as BusRuntime from "./busRuntime.ts"
import * as HandlerMethods from "./handlerMethods.ts"

interface Wrapper {
  readonly instance: unknown
  readonly metatype: unknown
  readonly isDependencyTreeStatic: () => boolean
}

/** The handlers of one bus, and the mistakes that this bus is to tell. */
export const of = (modules: ModulesContainer, busName: string): BusRuntime.Part => {
  const wrappers = Array.from(modules.values()).flatMap(
    ({ providers, controllers }): ReadonlyArray<Wrapper> => [...providers.values(), ...controllers.values()]
  )
  const buses = wrappers.flatMap(({ instance }) => BusRuntime.of(instance)?.name ?? [])
  const found = new Map(
    wrappers.flatMap((wrapper) => {
      const holder = holderOf(wrapper)
      return holder === undefined ? [] : [[holder, wrapper] as const]
    })
  )
  const all = Array.from(found, ([holder, wrapper]) => handlersOf(holder, wrapper)).flat()
  return {
    consumers: all
      .filter(({ method, issue }) => method.bus === busName && issue === undefined)
      .map(({ name, consumer }) => [name, consumer()] as const),
    issues: [
      ...all.flatMap(({ method, issue }) => (method.bus === busName && issue !== undefined ? [issue] : [])),
      ...all
        .filter(({ method }) => !buses.includes(method.bus))
        .map(({ path, method }) => unknownBus(path, method, buses)),
      ...(buses.filter((name) => name === busName).length > 1 ? [repeatedBus(busName)] : [])
    ]
  }
}

/** The instance, or the prototype of a class that has one instance for each request. An alias has the instance of another provider. */
const holderOf = ({ instance, metatype }: Wrapper): object | undefined => {
  if (typeof instance === "object" && instance !== null) return instance
  return typeof metatype === "function" ? metatype.prototype : undefined
}

const handlersOf = (holder: object, wrapper: Wrapper) => {
  const isStatic = wrapper.isDependencyTreeStatic()
  return Array.from(HandlerMethods.of(holder), ([key, method]) => {
    const path = `${holder.constructor.name}.${String(key)}`
    const call = (...args: ReadonlyArray<unknown>) =>
      (holder as { readonly [name: string | symbol]: (...args: ReadonlyArray<unknown>) => unknown })[key]?.(...args)
    const issue = isStatic ? undefined : requestScoped(path)
    return { path, method, issue, name: method.name ?? path, consumer: () => method.consumer(call) }
  })
}

type Issue = EventBusError.ConfigurationIssue

const requestScoped = (path: string): Issue => ({
  path,
  found: "a provider in the scope of a request",
  allowed: "a provider with one instance, which may ask ModuleRef for others"
})

const unknownBus = (path: string, { bus }: HandlerMethods.HandlerMethod, buses: ReadonlyArray<string>): Issue => ({
  path: `${path}.bus`,
  found: JSON.stringify(bus),
  allowed: `one of the buses ${buses.join(", ")}`
})

const repeatedBus = (name: string): Issue => ({
  path: "EventBusModule.name",
  found: `two buses called ${JSON.stringify(name)}`,
  allowed: "a name for each: EventBusModule.forRoot({ name, ... })"
})
