export * as RegistrySerde from "./RegistrySerde.ts"
export * as SchemaRegistry from "./SchemaRegistry.ts"
export * as UnusableSchema from "./UnusableSchema.ts"
