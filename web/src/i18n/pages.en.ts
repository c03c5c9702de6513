export const pagesEn = {};
