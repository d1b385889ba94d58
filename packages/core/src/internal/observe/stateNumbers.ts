/**
 * States as numbers, for gauges, and the limit of exception labels.
 */
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { ContainerState } from "../../EventBusError.ts"
import type { Status } from "../../Health.ts"

/** Error classes of a binding that get a label of their own; all further ones count as `other`. */
export const mostExceptions = 50

/** The state of a binding as a number: CREATED 0, RUNNING 1, PAUSED 2, STOPPED 3, DESTROYED 4. */
export const stateNumber = (state: ContainerState): number => stateNumbers[state]

const stateNumbers = { CREATED: 0, RUNNING: 1, PAUSED: 2, STOPPED: 3, DESTROYED: 4 } as const

/** The health of a binding as a number: UP 0, DEGRADED 1, DOWN 2. */
export const healthNumber = (status: Status): number => healthNumbers[status]

const healthNumbers = { UP: 0, DEGRADED: 1, DOWN: 2 } as const

/** The state of a breaker as a number: 0 while records pass (CLOSED, DISABLED), 1 while none does (OPEN, FORCED_OPEN), 2 for HALF_OPEN. */
export const circuitNumber = (state: CircuitBreaker.State): number => circuitNumbers[state]

const circuitNumbers = { CLOSED: 0, DISABLED: 0, OPEN: 1, FORCED_OPEN: 1, HALF_OPEN: 2 } as const
