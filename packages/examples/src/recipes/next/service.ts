/** The bus of the process. Next compiles `instrumentation.ts` and the route files apart, each with a copy of what they import: the first copy stays. */
import type * as Service from "../bus.ts"

const shared = globalThis as typeof globalThis & { eventbus?: Promise<typeof Service> }

export const service = (): Promise<typeof Service> => {
  shared.eventbus ??= import("../bus.ts")
  return shared.eventbus
}

/** Starts the bus. At SIGTERM it drains, and the process ends. */
export const start = async (): Promise<void> => {
  const { bus, stopAtSigterm } = await service()
  stopAtSigterm(() => process.exit(0))
  await bus.start()
}

/** The admin API, probes and metrics. */
export const answer = async (request: Request): Promise<Response> => (await service()).admin.handler(request)
