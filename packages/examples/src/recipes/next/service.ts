/** The bus of the process. Next compiles `instrumentation.ts` and the route files apart, each with a copy of what they import: the first copy stays. */
import type * as Service from "../bus.ts"

const shared = globalThis as typeof globalThis & { eventbus?: Promise<typeof Service> }

export const service = (): Promise<typeof Service> => {
  shared.eventbus ??= import("../bus.ts")
  return shared.eventbus
}

/** The admin API, probes and metrics. */
export const answer = async (request: Request): Promise<Response> => (await service()).admin.handler(request)
