/** Wall time, and CPU time of all threads of this process. */
import type { Samples } from "./Benchmark.ts"

export interface Moment {
  readonly millis: number
  readonly cpuMicros: number
}

export const now = (): Moment => {
  const { user, system } = process.cpuUsage()
  return { millis: performance.now(), cpuMicros: user + system }
}

export const since = (start: Moment): Moment => {
  const end = now()
  return { millis: end.millis - start.millis, cpuMicros: end.cpuMicros - start.cpuMicros }
}

/** `rate` in records per second and `cpu` in microseconds per record. */
export const pace = ({ millis, cpuMicros }: Moment, records: number): Samples => ({
  rate: [records / (millis / 1_000)],
  cpu: [cpuMicros / records]
})

/** Epoch milliseconds with fractions, comparable between processes of one machine. */
export const wallMillis = (): number => performance.timeOrigin + performance.now()
