/**
 * The bus of a NestJS application. It starts behind `onApplicationBootstrap` of every other module, and drains before `onModuleDestroy` of every other one.
 *
 * ```ts
 * import { EventBusModule } from "@eventbus/nestjs"
 * import { Module } from "@nestjs/common"
 *
 * @Module({ imports: [EventBusModule.forRoot({ kafka: { brokers: ["localhost:9092"] } })] })
 * export class AppModule {}
 * ```
 *
 * `app.enableShutdownHooks()` drains the bus at SIGTERM: without it a signal ends the process as it does in every Nest application.
 */
import type { EventBusOptions } from "@eventbus/node"
import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata, type Provider } from "@nestjs/common"
import { ModulesContainer } from "@nestjs/core"
import { eventBusToken } from "./EventBusService.ts"
import * as ApplicationHandlers from "./internal/applicationHandlers.ts"
import * as BusRuntime from "./internal/busRuntime.ts"
import * as HookOrder from "./internal/hookOrder.ts"
import * as NestLog from "./internal/nestLog.ts"

/** How a bus appears in the application. */
interface Naming {
  /** The name of the bus, for an application with several: `@InjectEventBus(name)` and `@KafkaHandler({ bus: name })`. Default: the bus without a name. */
  readonly name?: string
  /** Whether all modules see the bus without an import. Default true. */
  readonly isGlobal?: boolean
}

/** The options of a bus: those of `createEventBus`. Nest owns the signals, and `log` is Nest's logger by default. */
export interface EventBusModuleOptions extends Naming, Omit<EventBusOptions, "signals"> {}

/** The options of a bus that depend on other providers. */
export interface EventBusModuleAsyncOptions extends Naming, Pick<ModuleMetadata, "imports"> {
  /** The providers that the function gets. Default: none. */
  readonly inject?: FactoryProvider["inject"]
  /** Answers the options, or a promise of them. */
  readonly useFactory: (
    // biome-ignore lint/suspicious/noExplicitAny: whatever the providers are
    ...providers: any
  ) => Omit<EventBusModuleOptions, keyof Naming> | PromiseLike<Omit<EventBusModuleOptions, keyof Naming>>
}

/** The module. */
export class EventBusModule {
  /** A bus with these options. */
  static forRoot(given: EventBusModuleOptions): DynamicModule {
    const { name, isGlobal, ...options } = given
    return dynamic({ name, isGlobal }, [{ provide: OPTIONS, useValue: options }])
  }

  /** A bus whose options a function makes of other providers, such as those of a configuration. */
  static forRootAsync(given: EventBusModuleAsyncOptions): DynamicModule {
    const { name, isGlobal, imports, inject, useFactory } = given
    const options = { provide: OPTIONS, useFactory, ...(inject === undefined ? {} : { inject }) }
    return dynamic({ name, isGlobal }, [options], imports)
  }
}
Module({})(EventBusModule)

/** Tokens that only the module itself sees. */
const OPTIONS = Symbol("EventBusModule options")
const RUNTIME = Symbol("EventBusModule runtime")
const HOOKS = Symbol("EventBusModule hooks")

const dynamic = (
  { name = BusRuntime.defaultName, isGlobal = true }: { readonly [N in keyof Naming]: Naming[N] | undefined },
  options: Array<Provider>,
  imports: ModuleMetadata["imports"] = []
): DynamicModule => {
  const context = name === BusRuntime.defaultName ? "EventBus" : `EventBus ${name}`
  const runtime: Provider = {
    provide: RUNTIME,
    inject: [OPTIONS],
    useFactory: (given: EventBusOptions) => BusRuntime.make(name, { log: NestLog.make(context), ...given, signals: [] })
  }
  const service: Provider = {
    provide: eventBusToken(name),
    inject: [RUNTIME],
    useFactory: ({ bus }: BusRuntime.BusRuntime) => bus
  }
  const hooks: Provider = { provide: HOOKS, inject: [RUNTIME, ModulesContainer], useFactory: hooksOf }
  return {
    module: EventBusModule,
    global: isGlobal,
    imports,
    providers: [...options, runtime, service, hooks],
    exports: [eventBusToken(name)]
  }
}

/** Nest calls these two. */
const hooksOf = ({ name, bootstrap, stop }: BusRuntime.BusRuntime, modules: ModulesContainer) => {
  HookOrder.outermost(modules, EventBusModule)
  return {
    onApplicationBootstrap: () => bootstrap(() => ApplicationHandlers.of(modules, name)),
    onModuleDestroy: stop
  }
}
