/** All benchmarks by name. Each is loaded on demand, so that a process holds only the code that it measures. */
import type { Benchmark } from "./harness/Benchmark.ts"

export const benchmarks: Readonly<Record<string, () => Promise<Benchmark>>> = {
  consume: async () => (await import("./consume.ts")).consume,
  codecs: async () => (await import("./codecs.ts")).codecRates,
  publish: async () => (await import("./publish.ts")).publish,
  messaging: async () => (await import("./messaging.ts")).messaging,
  latency: async () => (await import("./latency.ts")).latency,
  commit: async () => (await import("./commit.ts")).commit,
  keys: async () => (await import("./keys.ts")).keys,
  tiers: async () => (await import("./tiers.ts")).tiers,
  order: async () => (await import("./order.ts")).order,
  delays: async () => (await import("./delays.ts")).delays,
  breaker: async () => (await import("./breaker.ts")).breaker,
  rabbitmq: async () => (await import("./rabbitmq.ts")).rabbitmq,
  configuration: async () => (await import("./configuration.ts")).configuration,
  rebalance: async () => (await import("./rebalance.ts")).rebalance,
  memory: async () => (await import("./memory.ts")).memory,
  outbox: async () => (await import("./outbox.ts")).outbox,
  outboxBloat: async () => (await import("./outboxBloat.ts")).outboxBloat,
  observed: async () => (await import("./observed.ts")).observed,
  connector: async () => (await import("./connector.ts")).connector,
  idle: async () => (await import("./idle.ts")).idle,
  start: async () => (await import("./start.ts")).start,
  fleet: async () => (await import("./fleet.ts")).fleet
}
