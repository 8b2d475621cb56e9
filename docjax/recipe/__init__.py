"""What the recipe for a user's corpus does beside the steps: word vectors and their share,
principal components, the teacher, and the judgement."""
