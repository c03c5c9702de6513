export const pagesJa = {};
