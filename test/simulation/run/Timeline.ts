/**
 * Runs an effect in virtual time, synchronously and always in the same order.
 *
 * All fibers share one queue of ready tasks. When it is empty, nothing more can happen at this moment, so the clock jumps to the next sleeper. No
 * number of yields has to be guessed, and an hour costs only what happens in it.
 */
import { Clock, Context, Duration, Effect, type Exit, Logger, Metric, Random, References, Scheduler } from "effect"
import * as SeededRandom from "../scenario/random.ts"
import { beginMillis } from "../scenario/Scenario.ts"

interface Sleeper {
  readonly atMillis: number
  readonly order: number
  wake: (() => void) | undefined
}

export interface Options {
  readonly seed: number
  /** `shuffled` draws the next ready task at random, which gives interleavings that are rare on a real event loop. */
  readonly interleaving: "first-come" | "shuffled"
  /** Limit of the tasks of a run, which stops a program that spins. Default 20 million. */
  readonly maxTasks?: number
}

/** The run cannot go on. */
export class Stuck extends Error {
  override readonly name = "Stuck"
}

export class Timeline {
  /** Fibers that have started and not ended. */
  fibers = 0
  nowMillis = beginMillis
  private readonly chance: SeededRandom.Random
  private readonly options: Options
  private ready: Array<() => void> = []
  private sleepers: Array<Sleeper> = []
  private asleep = 0
  private order = 0
  private tasks = 0

  constructor(options: Options) {
    this.options = options
    this.chance = SeededRandom.make(options.seed)
  }

  /** Fibers that wait for the clock. */
  get sleeping(): number {
    return this.asleep
  }

  run<A, E>(effect: Effect.Effect<A, E>): Exit.Exit<A, E> {
    const fiber = Effect.runForkWith(this.context())(effect)
    for (;;) {
      this.runReady()
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return exit
      if (!this.wakeNext()) throw new Stuck("everything waits for something, and nothing is due any more")
    }
  }

  private runReady(): void {
    const shuffled = this.options.interleaving === "shuffled"
    const maxTasks = this.options.maxTasks ?? 20_000_000
    for (let head = 0; head < this.ready.length; head++) {
      if (shuffled) {
        const chosen = this.chance.between(head, this.ready.length - 1)
        const task = this.ready[head]!
        this.ready[head] = this.ready[chosen]!
        this.ready[chosen] = task
      }
      this.ready[head]!()
      if (++this.tasks > maxTasks) throw new Stuck(`more than ${maxTasks} tasks: something spins`)
      if (head > 1024) {
        this.ready.splice(0, head + 1)
        head = -1
      }
    }
    this.ready.length = 0
  }

  private wakeNext(): boolean {
    for (let next = this.pop(); next !== undefined; next = this.pop()) {
      if (next.wake === undefined) continue
      this.nowMillis = next.atMillis
      const { wake } = next
      next.wake = undefined
      this.asleep--
      wake()
      return true
    }
    return false
  }

  private context() {
    const clock = this.clock()
    return Context.empty().pipe(
      Context.add(Scheduler.Scheduler, this.scheduler()),
      Context.add(Clock.Clock, clock),
      Context.add(Random.Random, {
        nextDoubleUnsafe: this.chance.next,
        nextIntUnsafe: () => this.chance.between(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
      }),
      Context.add(Logger.CurrentLoggers, new Set()),
      Context.add(References.MinimumLogLevel, "None"),
      Context.add(Metric.FiberRuntimeMetrics, {
        recordFiberStart: () => {
          this.fibers++
        },
        recordFiberEnd: () => {
          this.fibers--
        }
      })
    )
  }

  private scheduler(): Scheduler.Scheduler {
    const dispatcher: Scheduler.SchedulerDispatcher = {
      // Priorities are ignored: tasks run in the order of the queue.
      scheduleTask: (task) => {
        this.ready.push(task)
      },
      flush: () => {}
    }
    return {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= 2048,
      makeDispatcher: () => dispatcher
    }
  }

  private clock(): Clock.Clock {
    const nanos = () => BigInt(Math.round(this.nowMillis)) * 1_000_000n
    return {
      currentTimeMillisUnsafe: () => this.nowMillis,
      currentTimeMillis: Effect.sync(() => this.nowMillis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: (duration) => this.sleep(Duration.toMillis(duration))
    }
  }

  private sleep(millis: number): Effect.Effect<void> {
    if (millis <= 0) return Effect.yieldNow
    if (!Number.isFinite(millis)) return Effect.never
    return Effect.callback((resume) => {
      const sleeper: Sleeper = {
        // Whole milliseconds, as a clock shows and a timer keeps them.
        atMillis: this.nowMillis + Math.ceil(millis),
        order: this.order++,
        wake: () => resume(Effect.void)
      }
      this.push(sleeper)
      this.asleep++
      return Effect.sync(() => {
        if (sleeper.wake === undefined) return
        sleeper.wake = undefined
        this.asleep--
      })
    })
  }

  /** A binary heap with the earliest sleeper first, and of two with equal times the older one. */
  private push(sleeper: Sleeper): void {
    const heap = this.sleepers
    let at = heap.push(sleeper) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!earlier(heap[at]!, heap[parent]!)) return
      this.swap(at, parent)
      at = parent
    }
  }

  private pop(): Sleeper | undefined {
    const heap = this.sleepers
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    heap[0] = last
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      let least = at
      if (left < heap.length && earlier(heap[left]!, heap[least]!)) least = left
      if (left + 1 < heap.length && earlier(heap[left + 1]!, heap[least]!)) least = left + 1
      if (least === at) return first
      this.swap(at, least)
      at = least
    }
  }

  private swap(a: number, b: number): void {
    const heap = this.sleepers
    const held = heap[a]!
    heap[a] = heap[b]!
    heap[b] = held
  }
}

const earlier = (a: Sleeper, b: Sleeper): boolean =>
  a.atMillis < b.atMillis || (a.atMillis === b.atMillis && a.order < b.order)
