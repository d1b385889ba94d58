/**
 * A machine that runs the application: one process at a time, each with its own connector. Processes start, stop gracefully, or are killed.
 */
import { type Binding, Broker, EventBusConnector, type EventBusEvent, IdempotencyStore } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Exit, Layer, Metric, Scope } from "effect"
import type { History, LetterState } from "../history/History.ts"
import { type BindingPlan, beginMillis, type OrderingMode, type ReplayOrder } from "../scenario/Scenario.ts"
import { makeBinding } from "./bindings.ts"
import * as Deciding from "./deciding.ts"
import * as Figures from "./figures.ts"
import type { HandlerContext } from "./handlers.ts"
import * as Idempotency from "./idempotency.ts"
import * as Port from "./port.ts"
import * as Replaying from "./replaying.ts"
import type { Sabotage } from "./sabotagedPort.ts"

export interface MachineOptions {
  readonly name: string
  readonly service: number
  readonly concurrency: number
  readonly plans: ReadonlyArray<BindingPlan>
  readonly memory: MemoryBroker.MemoryBroker["Service"]
  readonly history: History
  readonly store: IdempotencyStore.IdempotencyStore["Service"]
  readonly handlerContext: HandlerContext
  readonly defect: Defect | undefined
}

/** A bug that is planted between the connector and the world, to prove that the rules see it. */
export interface Defect {
  /** Changes the connector itself, until the answer is called. */
  readonly plant?: () => () => void
  readonly sabotage?: Sabotage
  /** Changes the plan that the connector runs, but not the plan that the rules know. */
  readonly changePlan?: (plan: BindingPlan) => BindingPlan
  readonly wrapBinding?: <R>(binding: Binding.Binding<R>) => Binding.Binding<R>
  /** Changes the keys that the connector asks the idempotency store about. */
  readonly changeKey?: (key: string) => string
  /** Rewrites the events of the connector. */
  readonly rewriteEvent?: (event: EventBusEvent.EventBusEvent) => ReadonlyArray<EventBusEvent.EventBusEvent>
  /** Changes the figures that somebody reads. */
  readonly changeFigure?: Figures.ChangeFigure
  readonly pause?: "forgotten"
  readonly stop?: "forgotten"
}

interface Running {
  readonly process: string
  readonly connector: EventBusConnector.EventBusConnector["Service"]
  readonly scope: Scope.Closeable
  readonly registry: Figures.Registry
}

export class Machine {
  private readonly options: MachineOptions
  private lives = 0
  private running: Running | undefined
  /** Number of stops and kills that have not ended. */
  private ending = 0
  private resumes = 0
  /** The mode of processes that start from now on. */
  orderingMode: OrderingMode = "PER_KEY"

  constructor(options: MachineOptions) {
    this.options = options
  }

  get service(): number {
    return this.options.service
  }

  /** The names of its bindings. */
  get bindings(): ReadonlyArray<string> {
    return this.options.plans.map(({ name }) => name)
  }

  get isUp(): boolean {
    return this.running !== undefined
  }

  get isIdle(): boolean {
    return this.running === undefined && this.ending === 0
  }

  start(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      if (this.running !== undefined) return
      const { name, history, memory, plans, concurrency, handlerContext, defect } = this.options
      const process = `${name}.${++this.lives}`
      const scope = yield* Scope.make()
      const listening = yield* Scope.make()
      // Finalizers run in reverse order, so the listener still hears the connector close.
      yield* Scope.addFinalizer(scope, Scope.close(listening, Exit.void))
      const registry: Figures.Registry = new Map()
      const measured = Effect.provideService(Metric.MetricRegistry, registry)
      const connector = Context.get(
        yield* measured(Layer.buildWithScope(Layer.fresh(EventBusConnector.layer), scope)),
        EventBusConnector.EventBusConnector
      )
      this.running = { process, connector, scope, registry }
      const { orderingMode } = this
      history.add({ _tag: "ProcessStarted", process, orderingMode })
      const listen = connector.subscribe((event) => {
        for (const reported of defect?.rewriteEvent?.(event) ?? [event])
          history.add({ _tag: "Connector", process, event: reported })
      })
      yield* Scope.provide(listen, listening)
      const port = Port.ofProcess(memory, history, process, defect?.sabotage)
      const keys = Idempotency.ofProcess(this.options.store, history, process, defect?.changeKey)
      for (const given of plans) {
        const plan = orderingMode === "PER_KEY" ? given : withoutOrder(given)
        const binding = makeBinding(defect?.changePlan?.(plan) ?? plan, concurrency, process, handlerContext)
        const register = connector.register(defect?.wrapBinding?.(binding) ?? binding)
        yield* register.pipe(
          Effect.provideService(Broker.Broker, port),
          Effect.provideService(IdempotencyStore.IdempotencyStore, keys),
          measured,
          Effect.orDie
        )
      }
    })
  }

  /** A graceful shutdown. */
  stop(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const running = this.takeDown()
      if (running === undefined) return Effect.void
      const { history, defect } = this.options
      const { process, scope } = running
      history.add({ _tag: "ProcessStopping", process })
      const stopped = Effect.sync(() => history.add({ _tag: "ProcessStopped", process }))
      if (defect?.stop === "forgotten") return Effect.andThen(stopped, this.ended)
      return Effect.andThen(Effect.andThen(Scope.close(scope, Exit.void), stopped), this.ended)
    })
  }

  /** kill -9: the history records nothing more of this process, and its remaining fibers end unobserved. */
  kill(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const running = this.takeDown()
      if (running === undefined) return Effect.void
      this.options.history.add({ _tag: "ProcessKilled", process: running.process })
      const sweep = Effect.andThen(Scope.close(running.scope, Exit.void), this.ended)
      return Effect.andThen(this.options.memory.kill(running.process), sweep)
    })
  }

  pause(binding: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.running === undefined) return Effect.void
      const { process, connector } = this.running
      const command = this.options.defect?.pause === "forgotten" ? Effect.void : connector.pause(binding)
      const resumesBefore = this.resumes
      // A resume during the commit of a pause counts more than the pause.
      const note = Effect.sync(() => {
        if (resumesBefore === this.resumes) this.options.history.add({ _tag: "Paused", process, binding })
      })
      return Effect.ignore(Effect.andThen(command, note))
    })
  }

  resume(binding: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.running === undefined) return Effect.void
      const { process, connector } = this.running
      this.resumes++
      this.options.history.add({ _tag: "Resumed", process, binding })
      return Effect.ignore(connector.resume(binding))
    })
  }

  /** An operator replays dead letters in this process. */
  replay(binding: string, order: ReplayOrder): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.running === undefined) return Effect.void
      const { process, connector } = this.running
      const { partitions } = this.options.plans.find(({ name }) => name === binding)!
      return Effect.map(Replaying.replay(connector, binding, partitions, order), (replayed) =>
        this.options.history.add({ _tag: "ReplayEnded", process, binding, order: order._tag, replayed })
      )
    })
  }

  /** An operator decides about held keys. */
  decide(binding: string, decision: Parameters<typeof Deciding.decide>[2]): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.running === undefined) return Effect.void
      const { process, connector } = this.running
      return Deciding.decide(connector, binding, decision, (at, by) =>
        this.options.history.add({ _tag: "KeyDecided", process, binding, verb: decision.verb, at, by })
      )
    })
  }

  /** An operator gives dead letters up: every so manieth that waits. */
  discard(binding: string, every: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.running === undefined) return Effect.void
      const { process, connector } = this.running
      const { history, plans } = this.options
      const { partitions } = plans.find(({ name }) => name === binding)!
      return Replaying.discard(connector, binding, partitions, every, (givenUp) =>
        history.add({ _tag: "Discarded", process, binding, ...givenUp })
      )
    })
  }

  /** An operator deletes the dead letters of before some time. */
  purge(binding: string, beforeMillis: number): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.running === undefined
        ? Effect.void
        : Replaying.purge(this.running.connector, binding, beginMillis + beforeMillis)
    )
  }

  /** The dead letters of a binding as an operator of this process sees them; undefined when they cannot be seen. */
  letters(binding: string): Effect.Effect<ReadonlyArray<LetterState> | undefined> {
    return Effect.suspend(() => {
      const { partitions } = this.options.plans.find(({ name }) => name === binding)!
      return this.running === undefined
        ? Effect.succeed(undefined)
        : Replaying.look(this.running.connector, binding, partitions)
    })
  }

  /** Somebody reads all figures of this process. */
  read(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.running === undefined) return Effect.void
      const { process, connector, registry } = this.running
      const { history, memory, plans, defect } = this.options
      const change = defect?.changeFigure ?? ((_: string, value: number) => value)
      return Effect.map(Figures.read({ registry, connector, memory, plans, change }), (reading) =>
        history.add({ _tag: "Read", process, ...reading })
      )
    })
  }

  private readonly ended: Effect.Effect<void> = Effect.sync(() => {
    this.ending--
  })

  private takeDown(): Running | undefined {
    const running = this.running
    this.running = undefined
    if (running !== undefined) this.ending++
    return running
  }
}

/** Keys that are parked go on in order, and no other is parked. */
const withoutOrder = ({ perKey, ...plan }: BindingPlan): BindingPlan => plan
