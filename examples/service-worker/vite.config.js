// The service worker is a second entry, whose address never changes.
export default {
  build: {
    rolldownOptions: { input: ['index.html', 'sw.js'], output: { entryFileNames: '[name].js' } },
  },
};
