/**
 * The bus of an application, as providers and controllers inject it: publishes, pauses, lists dead letters, says how it is.
 *
 * ```ts
 * import { EventBusService } from "@eventbus/nestjs"
 * import { Injectable } from "@nestjs/common"
 *
 * @Injectable()
 * export class Shop {
 *   constructor(private readonly bus: EventBusService) {}
 *
 *   async place(id: string) {
 *     await this.bus.publish("orders", { key: id, value: JSON.stringify({ id }) })
 *   }
 * }
 * ```
 */
import type { EventBus } from "@eventbus/node"
import { Inject } from "@nestjs/common"
import { defaultName } from "./internal/busRuntime.ts"

/**
 * The bus. `EventBusModule` starts and stops it, so nobody else calls `start` or `stop`. Its methods reject with `EventBusNotRunning` before `onApplicationBootstrap` of the
 * application is over.
 */
export type EventBusService = EventBus

/** The token of the bus without a name. Nest injects by it. */
export const EventBusService: abstract new () => EventBus = class {} as unknown as abstract new () => EventBus

/** The token of the bus of that name. Default: of the bus without a name. */
export const eventBusToken = (name: string = defaultName): typeof EventBusService | string =>
  name === defaultName ? EventBusService : `EventBusService(${name})`

/** Injects the bus of that name. The bus without a name needs no decorator: its type is its token. */
export const InjectEventBus = (name?: string): PropertyDecorator & ParameterDecorator => Inject(eventBusToken(name))
