/**
 * When Nest calls the hooks of a module.
 *
 * Nest bootstraps modules from the farthest import to the root, and destroys them in the opposite order, each hook after the other. The root is at distance 0, a global module at
 * the greatest. A module nearer than the root is the last to be bootstrapped and the first to be destroyed. No other hook has that place: `beforeApplicationShutdown` and the
 * `close` of a transport come after every `onModuleDestroy`.
 */
import type { ModulesContainer } from "@nestjs/core"

/** Puts the modules of a class behind all others at the start, and before all others at the end. Nest reads the distances after it has made all instances. */
export const outermost = (modules: ModulesContainer, moduleClass: unknown): void => {
  for (const module of modules.values()) if (module.metatype === moduleClass) module.distance = -1
}
