/**
 * What tests need of the world: a real gateway, a model that follows a script, tokens for users.
 *
 *     const model = await startModel(['Hello.']);
 *     const gateway = await startGateway({ model });
 *     …
 *     await gateway.stop();
 *     await model.stop();
 */
export { type Gateway, type GatewayOptions, gatewayBinary, startGateway } from './gateway.ts';
export { type Model, type ModelReply, type ModelRequest, type Script, startModel } from './model.ts';
export { type CuttableProxy, startProxy } from './proxy.ts';
export { mintToken } from './token.ts';
