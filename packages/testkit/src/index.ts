export * as FaultPlan from "./FaultPlan.ts"
export * as MemoryBroker from "./MemoryBroker.ts"
export * as VirtualClock from "./VirtualClock.ts"
export * as VirtualTime from "./VirtualTime.ts"
